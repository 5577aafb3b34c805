"""Users who succeed at everything: two paths of the pod's own target, some thirty requests a second."""
from locust import HttpUser, constant, task


class Steady(HttpUser):
    wait_time = constant(0.2)

    @task(4)
    def ok(self):
        self.client.get("/ok")

    @task(1)
    def other(self):
        self.client.get("/other")
