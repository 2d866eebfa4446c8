"""Sends the messages with SDKs and checks what these return.

Usage: run.py [--only MESSAGE] [--refused] PACKAGE[-CLIENT]...
PROVIDERS_URL is the address of the server, PROVIDERS_KEY the key. With --refused, the server has to refuse the key.
"""

import argparse
import importlib
import os
import sys
import traceback

from messages import messages_for


class Runner:
    """Runs steps, prints failures, and counts them."""

    def __init__(self, only):
        self.only = only
        self.failures = 0

    def step(self, name, action, *arguments):
        """Runs one step if it is selected."""
        if self.only and not name.endswith(self.only):
            return
        try:
            action(*arguments)
        except Exception:
            self.failures += 1
            print(f"{name}: {traceback.format_exc()}", file=sys.stderr)

    def run(self, name, sdk, refused):
        """Sends the messages with one SDK."""
        messages = messages_for(name)
        if refused:
            self.step(f"{name} refused", lambda: sdk.check_refused(error_of(sdk, messages["basic"])))
            return
        for message in ("basic", "attachment", "inline", "many", "unicode"):
            if message != "inline" or getattr(sdk, "has_inline_images", True):
                self.step(f"{name} {message}", sdk.send, messages[message])
        batch = [messages[f"batch-{number}"] for number in (1, 2, 3)]
        self.step(f"{name} batch", lambda: sdk.send_batch(batch))
        if hasattr(sdk, "send_template"):
            self.step(f"{name} template", sdk.send_template, messages["template"])
        self.step(f"{name} invalid", lambda: sdk.check_invalid(error_of(sdk, messages["invalid"])))


def error_of(sdk, message):
    """Returns the error of a request."""
    try:
        answer = sdk.send(message)
    except Exception as error:
        return error
    raise AssertionError(f"succeeded with {answer!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    parser.add_argument("--refused", action="store_true")
    parser.add_argument("sdks", nargs="+", metavar="PACKAGE")
    options = parser.parse_args()
    runner = Runner(options.only)
    for package in options.sdks:
        package, _, selected = package.partition("-")
        module = importlib.import_module(f"sdks.{package}")
        clients = module.connect(os.environ["PROVIDERS_URL"], os.environ.get("PROVIDERS_KEY", "key"))
        for name, sdk in clients.items():
            if selected in ("", name):
                runner.run(f"python-{name}", sdk, options.refused)
    sys.exit(runner.failures > 0)


if __name__ == "__main__":
    main()
