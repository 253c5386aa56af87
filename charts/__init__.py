"""The Helm chart, and the program that writes what the chart has from elsewhere."""
