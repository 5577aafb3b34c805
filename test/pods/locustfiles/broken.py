"""A syntax error: Locust ends with exit code 1 within seconds and never opens its master port."""
from locust import HttpUser task
