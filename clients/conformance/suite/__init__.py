"""Plays the scenarios to a client, and judges what it reports."""
