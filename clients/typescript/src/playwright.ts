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
 * every worker starts its own server. With `restanteLease`, every worker leases a run, so that no other tests on the same server see its
 * mail.
 */

import { test as base } from "@playwright/test";
import { Refused } from "./errors.js";
import { Mailbox } from "./mailbox.js";
import { start, type RunningServer, type StartOptions } from "./process.js";
import { Restante, type RestanteOptions, type Run } from "./server.js";

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
  /**
   * The pattern of test addresses, with `*` for the part that differs. Default: `test-*@` and the domain of the leased run, or
   * `example.org`.
   */
  restanteAddress: string | undefined;
}

/** The options of workers. */
export interface RestanteWorkerSettings {
  /** Whether each worker starts its own server, or how. Default: false. */
  restanteStart: boolean | StartOptions;
  /** Whether each worker leases a run, or from which server if it starts none. Default: false. */
  restanteLease: boolean | RestanteOptions;
}

/** The fixtures of workers. */
export interface RestanteWorkerFixtures {
  /** The server that was started for this worker, or undefined if an existing server is used. */
  restanteServer: RunningServer | undefined;
  /** The run that was leased for this worker, or undefined. */
  restanteRun: Run | undefined;
}

/** The longest lifetime of a run. It usually ends with the worker. */
const LEASE_TIME = "24h";

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
  restanteLease: [false, { option: true, scope: "worker" }],
  restanteRun: [
    async ({ restanteLease, restanteServer }, use) => {
      if (restanteLease === false) return use(undefined);
      const server = restanteServer ?? new Restante(restanteLease === true ? {} : restanteLease);
      const run = await server.lease({ expiresIn: LEASE_TIME });
      await use(run);
      await run.end();
    },
    { scope: "worker" },
  ],
  restanteOptions: [{}, { option: true }],
  restante: async ({ restanteOptions, restanteServer, restanteRun }, use, testInfo) => {
    await use(restanteRun ?? restanteServer ?? new Restante(restanteOptions));
    if (restanteServer !== undefined && testInfo.status !== testInfo.expectedStatus) {
      await testInfo.attach("restante.log", { body: restanteServer.log, contentType: "text/plain" });
    }
  },
  restanteAddress: [undefined, { option: true }],
  mailbox: async ({ restante, restanteAddress, restanteServer, restanteRun }, use) => {
    // `restante run` sets the variable for the server that it has leased the run from.
    const inherited = restanteServer === undefined ? process.env["RESTANTE_DOMAIN"] : undefined;
    const domain = restanteRun?.domain ?? (inherited || "example.org");
    const address = (restanteAddress ?? `test-*@${domain}`).replace("*", () => unique());
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
