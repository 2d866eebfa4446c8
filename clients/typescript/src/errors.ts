/** The errors of this package. */

import type { MessageEntry, Summary } from "./records.js";

/** The number of log lines in the text of an error. */
const LOG_LINES = 30;

/** The request failed. The text is the error message of the server. */
export class RestanteError extends Error {
  /** The HTTP status, or undefined if there was no response. */
  readonly status: number | undefined;

  constructor(text: string, status?: number, options?: ErrorOptions) {
    super(text, options);
    this.name = new.target.name;
    this.status = status;
  }
}

/** The message does not exist, or does not contain what was requested. */
export class NotFound extends RestanteError {}

/** The credentials are missing or wrong, or do not allow the request. */
export class Refused extends RestanteError {}

/** The expected messages did not arrive in time. */
export class WaitTimeout extends RestanteError {
  /** The expected messages that did arrive. */
  readonly messages: (Summary | MessageEntry)[];

  constructor(text: string, messages: (Summary | MessageEntry)[]) {
    super(text, 408);
    this.messages = messages;
  }
}

/** A message arrived although none was expected. */
export class UnexpectedMail extends RestanteError {
  /** The messages that arrived. */
  readonly messages: (Summary | MessageEntry)[];

  constructor(text: string, messages: (Summary | MessageEntry)[]) {
    super(text, 409);
    this.messages = messages;
  }
}

/** A server could not be started. */
export class StartError extends RestanteError {
  /** The log of the server; the end of it is in the text. */
  readonly log: string;

  constructor(text: string, log = "") {
    super(log ? `${text} The end of its log:\n${endOf(log)}` : text);
    this.log = log;
  }
}

/** Returns the end of a log, for a text. */
export function endOf(log: string): string {
  return log.split("\n").slice(-LOG_LINES).join("\n");
}
