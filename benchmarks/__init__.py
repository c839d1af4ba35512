"""Every system of the two papers, side by side on real data. Run from the checkout."""
