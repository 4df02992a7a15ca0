// Drives Debian's chromium for ../integration/browser.py: a line of JSON in, a line of JSON out.
// driver.js MODULES, the folder that has playwright-core and axe-core.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");

const modules = path.resolve(process.argv[2]);
const { chromium } = require(path.join(modules, "playwright-core"));
const axeSource = fs.readFileSync(path.join(modules, "axe-core", "axe.min.js"), "utf8");

let browser, page, seen;

// The page that was asked went away for the next one.
const gone = (error) => {
  if (!/context was destroyed|navigation/.test(error.message)) throw error;
};

const calls = {
  // A page in a context of its own, so that no cookie and no cache is left of the last one.
  async open({ url, scheme = "light", width = 1280, height = 900, javascript = true, cookies = [], zone }) {
    if (page) await page.context().close();
    const context = await browser.newContext({
      viewport: { width, height }, colorScheme: scheme, javaScriptEnabled: javascript,
      reducedMotion: "reduce", timezoneId: zone,
    });
    await context.addCookies(cookies);
    page = await context.newPage();
    seen = { console: [], requests: [], failed: [] };
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) seen.console.push(message.text());
    });
    page.on("pageerror", (error) => seen.console.push(String(error)));
    page.on("request", (request) => seen.requests.push(request.url()));
    page.on("requestfailed", (request) => seen.failed.push(request.url()));
    await page.goto(url);
  },
  goto: ({ url }) => page.goto(url),
  reload: () => page.reload(),
  url: () => page.url(),
  seen: () => seen,
  cookies: () => page.context().cookies(),
  // Works without the page's JavaScript, too: it is the browser that looks.
  texts: ({ selector }) => page.locator(selector).allInnerTexts(),
  count: ({ selector }) => page.locator(selector).count(),
  box: ({ selector }) => page.locator(selector).first().boundingBox(),
  attributes: ({ selector, names }) =>
    page.locator(selector).evaluateAll((all, wanted) => all.map((one) => wanted.map((name) => one.getAttribute(name))), names),
  fill: ({ selector, text }) => page.fill(selector, text),
  value: ({ selector }) => page.inputValue(selector),
  choose: ({ selector, value }) => page.selectOption(selector, value),
  click: ({ selector }) => page.click(selector),
  press: ({ key }) => page.keyboard.press(key),
  evaluate: ({ script }) => page.evaluate(script),
  // waitForFunction would evaluate a string inside of the page, which its policy forbids.
  async until({ script, timeout }) {
    const end = Date.now() + timeout;
    while (!(await page.evaluate(script).catch(gone))) {
      if (Date.now() > end) throw new Error("not within " + timeout + " ms, at " + page.url());
      await new Promise((done) => setTimeout(done, 20));
    }
    return true;
  },
  hidden: ({ selector, hidden }) => page.locator(selector).waitFor({ state: hidden ? "hidden" : "visible", timeout: 15000 }),
  offline: ({ offline }) => page.context().setOffline(offline),
  media: ({ media }) => page.emulateMedia({ media }),
  screenshot: ({ file, full = false }) => page.screenshot({ path: file, fullPage: full }).then(() => file),
  async axe() {
    await page.evaluate(axeSource);
    const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    return result.violations.map(({ id, impact, help, nodes }) => ({
      id, impact, help, nodes: nodes.map((node) => node.html.slice(0, 200) + " " + (node.failureSummary || "")).slice(0, 5),
    }));
  },
};

async function main() {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: process.getuid() === 0 ? ["--no-sandbox"] : [],
  });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { call, ...options } = JSON.parse(line);
    try {
      const value = await calls[call](options);
      const isPlain = value === null || ["boolean", "number", "string"].includes(typeof value) || Array.isArray(value) ||
        Object.getPrototypeOf(value ?? 0) === Object.prototype;
      console.log(JSON.stringify({ value: isPlain ? value : null }));
    } catch (error) {
      console.log(JSON.stringify({ error: String(error.stack || error) }));
    }
  }
  await browser.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
