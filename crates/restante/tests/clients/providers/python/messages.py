"""The messages that every SDK sends, and helpers for their forms."""

import base64
import email.message
import email.policy
import email.utils
import json
import pathlib


def messages_for(sdk):
    """Returns the messages for an SDK, by name. Their mailboxes start with the name of the SDK."""
    path = pathlib.Path(__file__).parent.parent / "messages.json"
    messages = json.loads(path.read_text(encoding="utf-8").replace("SDK", sdk))
    for message in messages:
        for attachment in message["attachments"]:
            attachment["bytes"] = base64.b64decode(attachment["content"])
    return {message["name"]: message for message in messages}


def addresses(people):
    """Returns the addresses of people, without their names."""
    return [person["address"] for person in people]


def formatted(people):
    """Returns people in the form `Bob Example <bob@example.test>`."""
    quoted = lambda name: name if name.replace(" ", "").isalpha() else f'"{name}"'
    return [f"{quoted(p['name'])} <{p['address']}>" if p["name"] else p["address"] for p in people]


def mime(message):
    """Returns a message as MIME, without the blind copies."""
    mail = email.message.EmailMessage(policy=email.policy.SMTP)
    mail["Subject"] = message["subject"]
    for name, people in [
        ("From", [message["from"]]), ("To", message["to"]), ("Cc", message["cc"]), ("Reply-To", message["reply-to"]),
    ]:
        if people:
            mail[name] = ", ".join(email.utils.formataddr((p["name"], p["address"])) for p in people)
    mail.set_content(message["text"])
    mail.add_alternative(message["html"], subtype="html")
    for attachment in message["attachments"]:
        maintype, subtype = attachment["type"].split("/")
        options = {"maintype": maintype, "subtype": subtype, "filename": attachment["filename"]}
        if "cid" in attachment:
            html = mail.get_payload()[1]
            html.add_related(attachment["bytes"], cid=f"<{attachment['cid']}>", disposition="inline", **options)
        else:
            mail.add_attachment(attachment["bytes"], **options)
    return mail.as_bytes()
