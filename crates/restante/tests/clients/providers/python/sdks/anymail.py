"""PyPI django-anymail with its providers. It checks the answers: a recipient without a status in the answer is an error."""

import email.mime.image

from anymail.exceptions import AnymailAPIError, AnymailRecipientsRefused
from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection

from messages import addresses, formatted

# The URL and the key of each provider, as settings. `{url}` and `{key}` are replaced.
PROVIDERS = {
    "amazon_ses": {"CLIENT_PARAMS": {
        "endpoint_url": "{url}", "region_name": "us-east-1", "aws_access_key_id": "{key}", "aws_secret_access_key": "secret",
    }},
    "brevo": {"API_URL": "{url}/v3/", "API_KEY": "{key}"},
    "mailersend": {"API_URL": "{url}/v1/", "API_TOKEN": "{key}", "BATCH_SEND_MODE": "use-bulk-email"},
    "mailgun": {"API_URL": "{url}/v3", "API_KEY": "{key}"},
    "mailjet": {"API_URL": "{url}/v3.1/", "API_KEY": "{key}", "SECRET_KEY": "secret"},
    "mailtrap": {"API_URL": "{url}/api/", "API_TOKEN": "{key}"},
    "mandrill": {"API_URL": "{url}/api/1.0", "API_KEY": "{key}"},
    "postal": {"API_URL": "{url}", "API_KEY": "{key}"},
    "postmark": {"API_URL": "{url}/", "SERVER_TOKEN": "{key}"},
    "resend": {"API_URL": "{url}/", "API_KEY": "{key}"},
    "scaleway": {
        "API_URL": "{url}/transactional-email/v1alpha1/regions/{{region}}/", "SECRET_KEY": "{key}", "PROJECT_ID": "project",
    },
    "sendgrid": {"API_URL": "{url}/v3/", "API_KEY": "{key}"},
    "sparkpost": {"API_URL": "{url}/api/v1", "API_KEY": "{key}"},
}
# Further clients: a provider, options, and more options for batches.
VARIANTS = {
    "mailtrap-sandbox": ("mailtrap", {"sandbox_id": 42}, {}),
    "postmark-bulk": ("postmark", {}, {"use_bulk_api": True}),
}
# Providers for which Anymail has no inline images, and providers for which it has no batches.
WITHOUT_INLINE_IMAGES = {"brevo", "postal", "scaleway"}
WITHOUT_BATCHES = {"amazon_ses", "postal", "scaleway"}


def connect(url, key):
    """Returns clients by name."""
    settings.configure(
        ANYMAIL={
            f"{name}_{member}".upper(): replace(value, url, key)
            for name, members in PROVIDERS.items() for member, value in members.items()
        },
        USE_TZ=True,
    )
    variants = {name: (name, {}, {}) for name in PROVIDERS} | VARIANTS
    return {f"anymail-{name}": Client(*variant) for name, variant in variants.items()}


def replace(value, url, key):
    if isinstance(value, dict):
        return {name: replace(member, url, key) for name, member in value.items()}
    return value.format(url=url, key=key)


class UnexpectedStatus(Exception):
    """A message was not sent to all recipients."""


class Client:
    def __init__(self, name, options, batch_options):
        self.name = name
        self.has_inline_images = name not in WITHOUT_INLINE_IMAGES
        backend = f"anymail.backends.{name}.EmailBackend"
        self.connection = get_connection(backend, **options)
        self.batch_connection = get_connection(backend, **options, **batch_options)

    def send(self, message, **more):
        mail = EmailMultiAlternatives(
            subject=message["subject"], body=message["text"], from_email=formatted([message["from"]])[0],
            **{name.replace("-", "_"): formatted(message[name]) for name in ("to", "cc", "bcc", "reply-to")},
            connection=self.batch_connection if more else self.connection,
        )
        mail.attach_alternative(message["html"], "text/html")
        for a in message["attachments"]:
            if "cid" in a:
                image = email.mime.image.MIMEImage(a["bytes"])
                image["Content-Disposition"] = f'inline; filename="{a["filename"]}"'
                image["Content-ID"] = f"<{a['cid']}>"
                mail.attach(image)
            else:
                mail.attach(a["filename"], a["bytes"], a["type"])
        for attribute, value in more.items():
            setattr(mail, attribute, value)
        mail.send()
        people = addresses(message["to"] + message["cc"] + message["bcc"])
        recipients = mail.anymail_status.recipients
        assert set(recipients) == set(people), recipients
        for status in recipients.values():
            # For batches, MailerSend has only an id of the batch.
            is_bulk = str(status.message_id).startswith("bulk:")
            if status.status not in ({"unknown"} if is_bulk else {"queued", "sent"}) or not status.message_id:
                raise UnexpectedStatus(recipients)

    def send_batch(self, messages):
        if self.name in WITHOUT_BATCHES:
            for message in messages:
                self.send(message)
            return
        to = [person for message in messages for person in message["to"]]
        # For Postmark, merge_data needs a template.
        attribute = "merge_metadata" if self.name == "postmark" else "merge_data"
        self.send({**messages[0], "to": to}, **{attribute: {address: {} for address in addresses(to)}})

    def check_invalid(self, error):
        # Mailjet reports errors of single messages, Postmark names the recipient in the message of the error.
        kind = {"mailjet": UnexpectedStatus, "postmark": AnymailRecipientsRefused}.get(self.name, AnymailAPIError)
        assert isinstance(error, kind), repr(error)
