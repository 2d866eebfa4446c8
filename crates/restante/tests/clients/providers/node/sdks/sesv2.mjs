// npm @aws-sdk/client-sesv2

import assert from "node:assert/strict";
import {
    BadRequestException, CreateEmailTemplateCommand, GetAccountCommand, GetEmailTemplateCommand, SendBulkEmailCommand,
    SendEmailCommand, SESv2Client,
} from "@aws-sdk/client-sesv2";
import { format } from "../messages.mjs";

export function connect(url, key) {
    const client = new SESv2Client({
        endpoint: url, region: "eu-central-1", credentials: { accessKeyId: key, secretAccessKey: "secret" },
    });
    const destination = ({ to, cc, bcc }) => ({
        ToAddresses: to.map(format), CcAddresses: cc.map(format), BccAddresses: bcc.map(format),
    });
    const send = async (message, content) => {
        const answer = await client.send(new SendEmailCommand({
            FromEmailAddress: format(message.from),
            ReplyToAddresses: message["reply-to"].map(format),
            Destination: destination(message),
            Content: content,
        }));
        assert.match(answer.MessageId, /^[\w.-]+$/);
        assert.ok(answer.$metadata.requestId);
    };
    return {
        send: (message) => send(message, {
            Simple: {
                Subject: { Data: message.subject, Charset: "UTF-8" },
                Body: { Text: { Data: message.text, Charset: "UTF-8" }, Html: { Data: message.html, Charset: "UTF-8" } },
                Attachments: message.attachments.map(({ filename, type, content, cid }) => ({
                    RawContent: Buffer.from(content, "base64"), FileName: filename, ContentType: type,
                    ContentDisposition: cid ? "INLINE" : "ATTACHMENT", ContentTransferEncoding: "BASE64",
                    ...(cid && { ContentId: cid }),
                })),
            },
        }),

        async sendBatch(messages) {
            const [{ from, subject, text, html }] = messages;
            const answer = await client.send(new SendBulkEmailCommand({
                FromEmailAddress: format(from),
                DefaultContent: {
                    Template: { TemplateContent: { Subject: subject, Text: text, Html: html }, TemplateData: "{}" },
                },
                BulkEmailEntries: messages.map((message) => ({ Destination: destination(message) })),
            }));
            assert.deepEqual(answer.BulkEmailEntryResults.map(({ Status }) => Status), messages.map(() => "SUCCESS"));
            assert.equal(new Set(answer.BulkEmailEntryResults.map(({ MessageId }) => MessageId)).size, messages.length);
        },

        async sendTemplate(message) {
            const TemplateContent = {
                Subject: "Order {{number}}",
                Text: "Hello {{name}}, order {{number}} is on its way.",
                Html: "<p>Hello {{name}}, order <b>{{number}}</b> is on its way.</p>",
            };
            await client.send(new CreateEmailTemplateCommand({ TemplateName: "order", TemplateContent }));
            const stored = await client.send(new GetEmailTemplateCommand({ TemplateName: "order" }));
            assert.deepEqual([stored.TemplateName, stored.TemplateContent], ["order", TemplateContent]);
            await send(message, {
                Template: { TemplateName: "order", TemplateData: JSON.stringify({ name: "Bob", number: 42 }) },
            });
            assert.equal((await client.send(new GetAccountCommand())).SendingEnabled, true);
        },

        checkInvalid(error) {
            assert.ok(error instanceof BadRequestException, error);
            assert.equal(error.$metadata.httpStatusCode, 400);
            assert.match(error.message, /-invalid\.test|address/i);
        },

        checkRefused(error) {
            assert.equal(error.$metadata.httpStatusCode, 403);
            assert.equal(error.name, "UnrecognizedClientException");
        },
    };
}
