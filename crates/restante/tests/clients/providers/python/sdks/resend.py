"""PyPI resend."""

import resend
from resend.exceptions import InvalidApiKeyError, ValidationError

from messages import formatted


def connect(url, key):
    """Returns clients by name."""
    resend.api_key, resend.api_url = key, url
    return {"resend": Client()}


def form(message):
    attachments = [
        {
            "content": list(a["bytes"]), "filename": a["filename"], "content_type": a["type"],
            **({"content_id": a["cid"]} if "cid" in a else {}),
        }
        for a in message["attachments"]
    ]
    return {
        "from": formatted([message["from"]])[0],
        **{name.replace("-", "_"): formatted(message[name]) for name in ("to", "cc", "bcc", "reply-to")},
        "subject": message["subject"], "text": message["text"], "html": message["html"], "attachments": attachments,
    }


class Client:
    def send(self, message):
        sent = resend.Emails.send(form(message))
        email = resend.Emails.get(sent["id"])
        assert (email["id"], email["subject"]) == (sent["id"], message["subject"]), email

    def send_batch(self, messages):
        answer = resend.Batch.send([form(message) for message in messages])
        assert len({email["id"] for email in answer["data"]}) == len(messages), answer

    def check_invalid(self, error):
        assert isinstance(error, ValidationError), repr(error)
        assert (error.code, error.error_type) == (422, "validation_error"), vars(error)

    def check_refused(self, error):
        assert isinstance(error, InvalidApiKeyError), repr(error)
