// The server under test, from the environment, and shapes of its answers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/** The address of the API. */
export const url = required("MAILPIT_URL");
/** The login and the password of the API. */
export const auth = { username: required("MAILPIT_USERNAME"), password: required("MAILPIT_PASSWORD") };
/** A picture of 160 by 120 pixels. */
export const picture = readFileSync(new URL("../picture.png", import.meta.url));

function required(name) {
    return process.env[name] ?? assert.fail(`the variable ${name} is not set`);
}

/**
 * Asserts that a value has a shape. A shape is `String`, `Number`, `Boolean` or `Object` for a value of this type, an array with
 * one shape for an array that is not empty and whose items have it, an object for an object with exactly these fields, and
 * any other value for itself.
 */
export function assertShape(value, shape, path = "value") {
    if (typeof shape === "function") {
        const type = { Object: "object" }[shape.name] ?? shape.name.toLowerCase();
        assert.equal(value === null ? "null" : typeof value, type, path);
    } else if (Array.isArray(shape)) {
        assert.ok(Array.isArray(value) && value.length > 0, `${path} is ${JSON.stringify(value)}`);
        value.forEach((item, index) => assertShape(item, shape[0], `${path}[${index}]`));
    } else if (shape !== null && typeof shape === "object") {
        assert.deepEqual(Object.keys(value ?? {}).sort(), Object.keys(shape).sort(), path);
        for (const [key, field] of Object.entries(shape)) assertShape(value[key], field, `${path}.${key}`);
    } else {
        assert.deepEqual(value, shape, path);
    }
}

export const address = { Name: String, Address: String };

/** The entry of a list. */
export const summary = {
    ID: String, MessageID: String, Read: Boolean, From: address, To: [address], Cc: [address], Bcc: [address],
    ReplyTo: [address], Subject: String, Created: String, Username: auth.username, Tags: Object, Size: Number,
    Attachments: Number, Snippet: String,
};

export const list = {
    total: Number, unread: Number, count: Number, messages_count: Number, messages_unread: Number, start: Number,
    tags: Object, messages: [summary],
};
