/**
 * Fixtures for Playwright: every test gets its own mailbox.
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
 * The server is set by the option `restanteOptions`, or by the environment variables of `Restante`. With the option `restanteStart`,
 * every worker starts its own server.
 */

import { test as base } from "@playwright/test";
import { Refused } from "./errors.js";
import { Mailbox } from "./mailbox.js";
import { start, type RunningServer, type StartOptions } from "./process.js";
import { Restante, type RestanteOptions } from "./server.js";

export { expect } from "@playwright/test";

/** The mailbox of one test. */
export type OwnMailbox = Mailbox & {
  /** An address whose messages are stored in this mailbox. */
  readonly address: string;
};

/** The fixtures of tests. */
export interface RestanteFixtures {
  /** The client. */
  restante: Restante;
  /** A mailbox that no other test uses. It is emptied after the test. */
  mailbox: OwnMailbox;
}

/** The options of projects. */
export interface RestanteSettings {
  /** The server and its credentials. */
  restanteOptions: RestanteOptions;
  /** The pattern of test addresses, with `*` for the part that differs. */
  restanteAddress: string;
}

/** The options of workers. */
export interface RestanteWorkerSettings {
  /** Whether each worker starts its own server, or how. Default: false. */
  restanteStart: boolean | StartOptions;
}

/** The fixtures of workers. */
export interface RestanteWorkerFixtures {
  /** The server that was started for this worker, or undefined if an existing server is used. */
  restanteServer: RunningServer | undefined;
}

/** Playwright's `test`, with the fixtures. */
export const test = base.extend<RestanteFixtures & RestanteSettings, RestanteWorkerFixtures & RestanteWorkerSettings>({
  restanteStart: [false, { option: true, scope: "worker" }],
  restanteServer: [
    async ({ restanteStart }, use) => {
      if (restanteStart === false) return use(undefined);
      const server = await start(restanteStart === true ? {} : restanteStart);
      await use(server);
      await server.stop();
    },
    { scope: "worker" },
  ],
  restanteOptions: [{}, { option: true }],
  restante: async ({ restanteOptions, restanteServer }, use, testInfo) => {
    await use(restanteServer ?? new Restante(restanteOptions));
    if (restanteServer !== undefined && testInfo.status !== testInfo.expectedStatus) {
      await testInfo.attach("restante.log", { body: restanteServer.log, contentType: "text/plain" });
    }
  },
  restanteAddress: ["test-*@example.org", { option: true }],
  mailbox: async ({ restante, restanteAddress }, use) => {
    const address = restanteAddress.replace("*", () => unique());
    // The address identifies the mailbox with every mailbox naming of the server.
    const mailbox = Object.assign(restante.mailbox(address), { address });
    await use(mailbox);
    try {
      await mailbox.purge();
    } catch (error) {
      // A read-only token cannot delete messages. The server removes them by retention.
      if (!(error instanceof Refused)) throw error;
    }
  },
});

function unique(): string {
  const random = () => Math.floor(Math.random() * 2 ** 32).toString(36);
  return `${Date.now().toString(36)}${random()}${random()}`;
}
