/** What can go wrong, as a test wants to tell it apart. */

import type { Summary } from "./records.js";

/** The server did not do what it was asked for; the text is its own sentence about it. */
export class RestanteError extends Error {
  /** The status of its answer, or undefined when there was none. */
  readonly status: number | undefined;

  constructor(text: string, status?: number, options?: ErrorOptions) {
    super(text, options);
    this.name = new.target.name;
    this.status = status;
  }
}

/** There is no such message, or nothing of the kind in it. */
export class NotFound extends RestanteError {}

/** The credentials are missing or wrong, or do not allow this. */
export class Refused extends RestanteError {}

/** The mail did not come in time. */
export class WaitTimeout extends RestanteError {
  /** Those of the expected ones that did. */
  readonly messages: Summary[];

  constructor(text: string, messages: Summary[]) {
    super(text, 408);
    this.messages = messages;
  }
}

/** Mail came although none was expected. */
export class UnexpectedMail extends RestanteError {
  /** What came. */
  readonly messages: Summary[];

  constructor(text: string, messages: Summary[]) {
    super(text, 409);
    this.messages = messages;
  }
}
