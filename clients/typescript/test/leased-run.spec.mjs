// Tests the Playwright fixture that leases a run. RESTANTE_SERVER contains the URL of the server.

import { Restante } from "../dist/index.js";
import { expect, test } from "../dist/playwright.js";

test.use({ restanteLease: true });

test("every worker can lease a run", async ({ mailbox, restante, restanteRun }) => {
  expect(restante).toBe(restanteRun);
  expect(mailbox.address).toContain(`@${restanteRun.domain}`);
  await new Restante().mailbox(mailbox.address).inject({ from: "app@example.com", subject: "Hello" });
  expect((await mailbox.waitForMessage()).subject).toBe("Hello");
  const other = await new Restante().lease();
  expect(await other.last()).toBe("0");
  await other.end();
});
