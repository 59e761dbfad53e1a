"""Sentence vectors to calibrated vectors."""
