"""PyPI sendgrid."""

from python_http_client.exceptions import BadRequestsError, UnauthorizedError
from sendgrid import SendGridAPIClient
from sendgrid.helpers import mail


def connect(url, key):
    """Returns clients by name."""
    return {"sendgrid": Client(SendGridAPIClient(f"SG.{key}", host=url))}


def form(message):
    form = mail.Mail(
        from_email=mail.From(message["from"]["address"], message["from"]["name"]), subject=message["subject"],
        plain_text_content=message["text"], html_content=message["html"],
    )
    for kind, add in ((mail.To, form.add_to), (mail.Cc, form.add_cc), (mail.Bcc, form.add_bcc)):
        for person in message[kind.__name__.lower()]:
            add(kind(person["address"], person["name"] or None))
    for person in message["reply-to"]:
        form.reply_to = mail.ReplyTo(person["address"], person["name"])
    # The SDK adds each attachment before the others.
    for a in reversed(message["attachments"]):
        form.add_attachment(mail.Attachment(
            mail.FileContent(a["content"]), mail.FileName(a["filename"]), mail.FileType(a["type"]),
            mail.Disposition("inline" if "cid" in a else "attachment"), mail.ContentId(a["cid"]) if "cid" in a else None,
        ))
    return form


class Client:
    def __init__(self, client):
        self.client = client

    def send_form(self, form):
        answer = self.client.send(form)
        assert (answer.status_code, answer.body) == (202, b""), (answer.status_code, answer.body)
        assert answer.headers["X-Message-Id"], answer.headers

    def send(self, message):
        self.send_form(form(message))

    def send_batch(self, messages):
        """One request with a personalization for each message."""
        batch = form({**messages[0], "to": []})
        for message in messages:
            personalization = mail.Personalization()
            for person in message["to"]:
                personalization.add_to(mail.To(person["address"], person["name"]))
            batch.add_personalization(personalization)
        self.send_form(batch)

    def check_invalid(self, error):
        assert isinstance(error, BadRequestsError), repr(error)
        assert error.to_dict["errors"][0]["field"].startswith("personalizations.0.to"), error.body

    def check_refused(self, error):
        assert isinstance(error, UnauthorizedError), repr(error)
