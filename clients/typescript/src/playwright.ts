/**
 * Fixtures for Playwright: every test gets a mailbox of its own.
 *
 *     import { test, expect } from "restante/playwright";
 *
 *     test("sign up", async ({ page, mailbox }) => {
 *       await page.getByLabel("E-mail").fill(mailbox.address);
 *       await page.getByRole("button", { name: "Sign up" }).click();
 *       const mail = await mailbox.waitForMessage();
 *       await page.getByLabel("Code").fill(await mail.code());
 *     });
 *
 * The server is that of the option `restanteOptions`, or of the variables that `Restante` knows.
 */

import { test as base } from "@playwright/test";
import { Refused } from "./errors.js";
import { Mailbox } from "./mailbox.js";
import { Restante, type RestanteOptions } from "./server.js";

export { expect } from "@playwright/test";

/** The mailbox of one test. */
export type OwnMailbox = Mailbox & {
  /** An address whose mail comes here. */
  readonly address: string;
};

/** What tests get. */
export interface RestanteFixtures {
  /** The client. */
  restante: Restante;
  /** A mailbox that no other test has; it is emptied afterwards. */
  mailbox: OwnMailbox;
}

/** What projects can set. */
export interface RestanteSettings {
  /** Which server, and how to get in. */
  restanteOptions: RestanteOptions;
  /** What the addresses of tests look like, with a star for what differs. */
  restanteAddress: string;
}

/** Playwright's `test`, with the fixtures. */
export const test = base.extend<RestanteFixtures & RestanteSettings>({
  restanteOptions: [{}, { option: true }],
  restante: async ({ restanteOptions }, use) => {
    await use(new Restante(restanteOptions));
  },
  restanteAddress: ["test-*@example.org", { option: true }],
  mailbox: async ({ restante, restanteAddress }, use) => {
    const address = restanteAddress.replace("*", () => unique());
    // Whatever the server names mailboxes after, it is that of the address.
    const mailbox = Object.assign(restante.mailbox(address), { address });
    await use(mailbox);
    try {
      await mailbox.purge();
    } catch (error) {
      // A token that may only read leaves it to the server to forget the mail.
      if (!(error instanceof Refused)) throw error;
    }
  },
});

function unique(): string {
  const random = () => Math.floor(Math.random() * 2 ** 32).toString(36);
  return `${Date.now().toString(36)}${random()}${random()}`;
}
