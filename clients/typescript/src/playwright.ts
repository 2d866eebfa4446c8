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
}

/** Playwright's `test`, with the fixtures. */
export const test = base.extend<RestanteFixtures & RestanteSettings>({
  restanteOptions: [{}, { option: true }],
  restante: async ({ restanteOptions }, use) => {
    await use(new Restante(restanteOptions));
  },
  mailbox: async ({ restante }, use) => {
    const name = `test-${crypto.randomUUID()}`;
    const mailbox = Object.assign(restante.mailbox(name), { address: `${name}@example.org` });
    await use(mailbox);
    await mailbox.purge();
  },
});
