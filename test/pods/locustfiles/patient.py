"""For a busy machine: a worker without processor for 3 s is not lost, and a run is not over before it has requests."""
import gevent
import locust.runners
from locust import events

locust.runners.HEARTBEAT_LIVENESS = 60


@events.test_stopping.add_listener
def wait_for_requests(environment, **_):
    runner = environment.runner
    while isinstance(runner, locust.runners.MasterRunner) and runner.stats.total.num_requests <= 50:
        gevent.sleep(0.1)
