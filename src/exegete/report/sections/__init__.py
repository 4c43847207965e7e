"""Sections: what a report says of each experiment, one file per experiment."""
