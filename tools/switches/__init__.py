"""Switches: where the literature's answer turns."""
