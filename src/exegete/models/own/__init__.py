"""The user's own module, through an adapter."""

from exegete.models.own.adapter import OwnModel as OwnModel
from exegete.models.own.adapter import OwnPooling as OwnPooling
