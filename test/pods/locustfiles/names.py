"""500 request names, some 200 requests a second, without a target: what a large page costs the master."""
import itertools

import patient  # noqa: F401
from locust import User, constant, task

numbers = itertools.count()


class Named(User):
    wait_time = constant(0.05)

    @task
    def ask(self):
        self.environment.events.request.fire(
            request_type="GET",
            name=f"/articles/{next(numbers) % 500:06}",
            response_time=7,
            response_length=1000,
            exception=None,
            context={},
        )
