// Tests the Playwright fixtures as a project uses them: a page that sends a message when its form is submitted.

import { createServer } from "node:http";

import { expect, test } from "../dist/playwright.js";

test("sign up with the code in the mail", async ({ page, mailbox, restante }) => {
  const app = createServer(async (request, response) => {
    const url = new URL(request.url, "http://app");
    response.setHeader("content-type", "text/html");
    if (url.pathname === "/join") {
      const text = "Hello!\r\n\r\nYour verification code is 730415.\r\n";
      await restante.mailbox(url.searchParams.get("email")).inject({ from: "app@example.com", subject: "Verify", text });
      response.end('<form action="/verify"><label>Code <input name="code"></label><button>Verify</button></form>');
    } else if (url.pathname === "/verify") {
      response.end(url.searchParams.get("code") === "730415" ? "<h1>Welcome</h1>" : "<h1>Wrong code</h1>");
    } else {
      response.end('<form action="/join"><label>E-mail <input name="email"></label><button>Sign up</button></form>');
    }
  });
  await new Promise((resolve) => app.listen(0, "127.0.0.1", resolve));
  try {
    await page.goto(`http://127.0.0.1:${app.address().port}/`);
    await page.getByLabel("E-mail").fill(mailbox.address);
    await page.getByRole("button", { name: "Sign up" }).click();
    const mail = await mailbox.waitForMessage({ match: "subject:verify" });
    await page.getByLabel("Code").fill(await mail.code());
    await page.getByRole("button", { name: "Verify" }).click();
    await expect(page.getByRole("heading")).toHaveText("Welcome");
  } finally {
    app.close();
  }
});
