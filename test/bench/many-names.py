"""Users who make 200 requests a second together, under 500 names. The worker prints how many it has made, every quarter of a second."""
from itertools import count

import gevent
from locust import HttpUser, constant_throughput, events, task
from locust.runners import WorkerRunner

NAMES_COUNT = 500
numbers = count()


class Many(HttpUser):
    # Of the 20 users that they are started with.
    wait_time = constant_throughput(10)

    @task
    def ok(self):
        self.client.get("/ok", name=f"/api/v1/customers/{next(numbers) % NAMES_COUNT}")


@events.init.add_listener
def count_requests(environment, **_):
    if not isinstance(environment.runner, WorkerRunner):
        return
    made = 0

    def add(**_):
        nonlocal made
        made += 1

    def tell():
        while True:
            print(f"made {made}", flush=True)
            gevent.sleep(0.25)

    environment.events.request.add_listener(add)
    gevent.spawn(tell)
