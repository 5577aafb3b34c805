"""The users of users.py, and the exporter quit by the master itself, as the last thing it does.

Without --exporter-url it quits nothing."""
from urllib.request import Request, urlopen

from locust import events
from users import Steady  # noqa: F401


@events.init_command_line_parser.add_listener
def add_option(parser):
    parser.add_argument("--exporter-url", default="", include_in_web_ui=False)


@events.quitting.add_listener
def quit_exporter(environment, **_):
    url = environment.parsed_options.exporter_url
    if url:
        try:
            urlopen(Request(f"{url}/quitquitquit", method="POST"), timeout=5)
        except OSError:
            pass  # It exits inside the handler and drops the connection.
