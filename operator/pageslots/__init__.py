"""pageslots: a pool of web browsers for crawling, on one machine or on Kubernetes."""

__version__ = "0.1.0"
