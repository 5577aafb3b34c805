"""Users of whom a part fails, so that Locust ends with exit code 1."""
import patient  # noqa: F401
from locust import HttpUser, constant, task


class Failing(HttpUser):
    wait_time = constant(0.2)

    @task(4)
    def ok(self):
        self.client.get("/ok")

    @task(1)
    def fail(self):
        self.client.get("/fail")
