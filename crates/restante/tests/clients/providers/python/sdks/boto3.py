"""PyPI boto3: versions 2 and 1 of the API of SES."""

import json
import os

import boto3
from botocore.exceptions import ClientError

from messages import addresses, formatted, mime


def connect(url, key):
    """Returns clients by name."""
    secret = os.environ.get("PROVIDERS_SECRET", "secret")
    client = lambda service, endpoint: boto3.client(
        service, region_name="eu-central-1", endpoint_url=endpoint, aws_access_key_id=key, aws_secret_access_key=secret
    )
    return {"sesv2": Version2(client("sesv2", url)), "ses": Version1(client("ses", f"{url}/ses"))}


def destination(message):
    members = {"ToAddresses": "to", "CcAddresses": "cc", "BccAddresses": "bcc"}
    return {member: formatted(message[name]) for member, name in members.items()}


def part(data):
    return {"Data": data, "Charset": "UTF-8"}


def check_id(answer):
    assert answer["MessageId"] and answer["ResponseMetadata"]["RequestId"], answer


def check_error(error, status, *codes):
    assert isinstance(error, ClientError), error
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == status, error.response
    assert error.response["Error"]["Code"] in codes, error.response
    assert error.response["Error"]["Message"], error.response


class Version2:
    def __init__(self, client):
        self.client = client

    def send_content(self, message, content):
        check_id(self.client.send_email(
            FromEmailAddress=formatted([message["from"]])[0], ReplyToAddresses=formatted(message["reply-to"]),
            Destination=destination(message), Content=content, EmailTags=[{"Name": "kind", "Value": message["name"]}],
        ))

    def send(self, message):
        attachments = [
            {
                "RawContent": a["bytes"], "FileName": a["filename"], "ContentType": a["type"],
                **({"ContentId": a["cid"], "ContentDisposition": "INLINE"} if "cid" in a else {}),
            }
            for a in message["attachments"]
        ]
        body = {"Text": part(message["text"]), "Html": part(message["html"])}
        simple = {"Subject": part(message["subject"]), "Body": body, "Attachments": attachments}
        self.send_content(message, {"Simple": simple})

    def send_batch(self, messages):
        first = messages[0]
        content = {"Subject": first["subject"], "Text": first["text"], "Html": first["html"]}
        answer = self.client.send_bulk_email(
            FromEmailAddress=formatted([first["from"]])[0],
            DefaultContent={"Template": {"TemplateContent": content, "TemplateData": "{}"}},
            BulkEmailEntries=[{"Destination": destination(message)} for message in messages],
        )
        results = answer["BulkEmailEntryResults"]
        assert [result["Status"] for result in results] == ["SUCCESS"] * len(messages), results
        assert len({result["MessageId"] for result in results}) == len(messages), results

    def send_template(self, message):
        content = {
            "Subject": "Order {{number}}",
            "Text": "Hello {{name}}, order {{number}} is on its way.",
            "Html": "<p>Hello {{name}}, order <b>{{number}}</b> is on its way.</p>",
        }
        self.client.create_email_template(TemplateName="order", TemplateContent=content)
        assert self.client.get_email_template(TemplateName="order")["TemplateContent"] == content
        data = json.dumps({"name": "Bob", "number": 42})
        self.send_content(message, {"Template": {"TemplateName": "order", "TemplateData": data}})

    def check_invalid(self, error):
        check_error(error, 400, "BadRequestException")

    def check_refused(self, error):
        check_error(error, 403, "UnrecognizedClientException", "InvalidSignatureException", "SignatureDoesNotMatch")


class Version1:
    def __init__(self, client):
        self.client = client

    def send(self, message):
        if message["attachments"]:
            people = addresses(message["to"] + message["cc"] + message["bcc"])
            check_id(self.client.send_raw_email(RawMessage={"Data": mime(message)}, Destinations=people))
            return
        body = {"Text": part(message["text"]), "Html": part(message["html"])}
        check_id(self.client.send_email(
            Source=formatted([message["from"]])[0], ReplyToAddresses=formatted(message["reply-to"]),
            Destination=destination(message), Message={"Subject": part(message["subject"]), "Body": body},
        ))

    def send_batch(self, messages):
        first = messages[0]
        template = {
            "TemplateName": "batch", "SubjectPart": first["subject"], "TextPart": first["text"], "HtmlPart": first["html"]
        }
        self.client.create_template(Template=template)
        answer = self.client.send_bulk_templated_email(
            Source=formatted([first["from"]])[0], Template="batch", DefaultTemplateData="{}",
            Destinations=[{"Destination": destination(message)} for message in messages],
        )
        assert [result["Status"] for result in answer["Status"]] == ["Success"] * len(messages), answer
        assert len({result["MessageId"] for result in answer["Status"]}) == len(messages), answer

    def check_invalid(self, error):
        check_error(error, 400, "InvalidParameterValue")

    def check_refused(self, error):
        check_error(error, 403, "InvalidClientTokenId", "SignatureDoesNotMatch")
