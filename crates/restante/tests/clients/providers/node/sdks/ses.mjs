// npm @aws-sdk/client-ses: version 1 of the API. It has no attachments: messages with them are sent as MIME.

import assert from "node:assert/strict";
import {
    CreateTemplateCommand, GetSendQuotaCommand, SendBulkTemplatedEmailCommand, SendEmailCommand, SendRawEmailCommand,
    SendTemplatedEmailCommand, SESClient, SESServiceException,
} from "@aws-sdk/client-ses";
import { format, mime } from "../messages.mjs";

export function connect(url, key) {
    const client = new SESClient({
        endpoint: `${url}/ses`, region: "eu-central-1", credentials: { accessKeyId: key, secretAccessKey: "secret" },
    });
    const destination = ({ to, cc, bcc }) => ({
        ToAddresses: to.map(format), CcAddresses: cc.map(format), BccAddresses: bcc.map(format),
    });
    const text = (Data) => ({ Data, Charset: "UTF-8" });
    const request = async (command) => {
        const answer = await client.send(command);
        assert.ok(answer.$metadata.requestId);
        return answer;
    };
    const createTemplate = (TemplateName, SubjectPart, TextPart, HtmlPart) =>
        request(new CreateTemplateCommand({ Template: { TemplateName, SubjectPart, TextPart, HtmlPart } }));
    return {
        async send(message) {
            const answer = await request(message.attachments.length
                ? new SendRawEmailCommand({
                    RawMessage: { Data: await mime(message) }, Source: format(message.from),
                    Destinations: [...message.to, ...message.cc, ...message.bcc].map(({ address }) => address),
                })
                : new SendEmailCommand({
                    Source: format(message.from), ReplyToAddresses: message["reply-to"].map(format),
                    Destination: destination(message),
                    Message: { Subject: text(message.subject), Body: { Text: text(message.text), Html: text(message.html) } },
                }));
            assert.match(answer.MessageId, /^[\w.-]+$/);
        },

        async sendBatch(messages) {
            const [{ from, subject, text, html }] = messages;
            await createTemplate("batch", subject, text, html);
            const answer = await request(new SendBulkTemplatedEmailCommand({
                Source: format(from), Template: "batch", DefaultTemplateData: "{}",
                Destinations: messages.map((message) => ({ Destination: destination(message) })),
            }));
            assert.deepEqual(answer.Status.map(({ Status }) => Status), messages.map(() => "Success"));
            assert.equal(new Set(answer.Status.map(({ MessageId }) => MessageId)).size, messages.length);
        },

        async sendTemplate(message) {
            await createTemplate("order", "Order {{number}}", "Hello {{name}}, order {{number}} is on its way.",
                "<p>Hello {{name}}, order <b>{{number}}</b> is on its way.</p>");
            const answer = await request(new SendTemplatedEmailCommand({
                Source: format(message.from), Destination: destination(message), Template: "order",
                TemplateData: JSON.stringify({ name: "Bob", number: 42 }),
            }));
            assert.ok(answer.MessageId);
            assert.ok((await request(new GetSendQuotaCommand())).Max24HourSend > 0);
        },

        checkInvalid(error) {
            assert.ok(error instanceof SESServiceException, error);
            assert.equal(error.$metadata.httpStatusCode, 400);
            assert.equal(error.name, "InvalidParameterValue");
            assert.equal(error.Type, "Sender");
            assert.match(error.message, /-invalid\.test|address/i);
        },

        checkRefused(error) {
            assert.equal(error.$metadata.httpStatusCode, 403);
            assert.equal(error.name, "InvalidClientTokenId");
        },
    };
}
