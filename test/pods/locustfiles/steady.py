"""Users who succeed at everything: two paths of the pod's own target, some thirty requests a second."""
import locust.runners
from locust import HttpUser, constant, task

# A worker that a busy machine leaves without processor for 3 s counts as lost, and its test as over, unless the master has more patience.
locust.runners.HEARTBEAT_LIVENESS = 60


class Steady(HttpUser):
    wait_time = constant(0.2)

    @task(4)
    def ok(self):
        self.client.get("/ok")

    @task(1)
    def other(self):
        self.client.get("/other")
