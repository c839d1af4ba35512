"""Readers, a module for each family of chat formats."""
