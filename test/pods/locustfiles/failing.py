"""Users of whom a part fails, so that Locust ends with exit code 1."""
import locust.runners
from locust import HttpUser, constant, task

# A worker that a busy machine leaves without processor for 3 s counts as lost, and its test as over, unless the master has more patience.
locust.runners.HEARTBEAT_LIVENESS = 60


class Failing(HttpUser):
    wait_time = constant(0.2)

    @task(4)
    def ok(self):
        self.client.get("/ok")

    @task(1)
    def fail(self):
        self.client.get("/fail")
