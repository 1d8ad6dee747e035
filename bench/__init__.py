"""Invented archives of any size, and what turndex needs to read, search and follow them."""
