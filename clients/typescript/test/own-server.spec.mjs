// Tests the Playwright fixture that starts a server. RESTANTE_PROGRAM contains the path of the program.

import { expect, test } from "../dist/playwright.js";

test.use({ restanteStart: { settings: { mailboxnaming: "full" } } });

test("every worker can have its own server", async ({ mailbox, restante, restanteServer }) => {
  expect(restante).toBe(restanteServer);
  expect(restanteServer.smtp.port).toBe((await restante.about()).smtp.port);
  await mailbox.inject({ from: "app@example.com", subject: "Hello" });
  const mail = await mailbox.waitForMessage();
  expect(mail.mailbox).toBe(mailbox.address);
});
