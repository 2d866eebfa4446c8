"""PyPI mailgun."""

import json

from mailgun.client import Client as Mailgun

from messages import addresses, formatted, mime


def connect(url, key):
    """Returns clients by name."""
    return {"mailgun": Client(Mailgun(auth=("api", key), api_url=url))}


class Client:
    def __init__(self, client):
        self.client = client

    def create(self, endpoint, data, files):
        answer = endpoint.create(data=data, files=files, domain="example.test")
        answer.raise_for_status()
        body = answer.json()
        assert body["message"] == "Queued. Thank you." and body["id"].startswith("<"), body

    def send(self, message, **more):
        data = {name: formatted(message[name]) for name in ("to", "cc", "bcc")}
        data.update({name: message[name] for name in ("subject", "text", "html")})
        data["from"] = formatted([message["from"]])[0]
        if message["reply-to"]:
            data["h:Reply-To"] = formatted(message["reply-to"])[0]
        files = [
            ("inline", (a["cid"], a["bytes"], a["type"])) if "cid" in a
            else ("attachment", (a["filename"], a["bytes"], a["type"]))
            for a in message["attachments"]
        ]
        self.create(self.client.messages, data | more, files or None)

    def send_batch(self, messages):
        """The first two as one message with variables of the recipients, the third one as MIME."""
        first, second, third = messages
        to = first["to"] + second["to"]
        text = first["text"].replace("Bob", "%recipient.name%")
        variables = json.dumps({address: {"name": "Bob"} for address in addresses(to)})
        self.send({**first, "to": to, "text": text}, **{"recipient-variables": variables})
        self.create(self.client.mimemessage, {"to": formatted(third["to"])}, [("message", ("message.mime", mime(third)))])

    def check_invalid(self, error):
        assert error.response.status_code == 400, error.response
        assert "to" in error.response.json()["message"], error.response.text

    def check_refused(self, error):
        assert (error.response.status_code, error.response.text) == (401, "Forbidden"), error.response.text
