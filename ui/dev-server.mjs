// Serves the web interface from this folder, without the bundle: a change of a file is visible after a reload. Everything
// else, with WebSockets, is forwarded to a running server.
//
// usage: node ui/dev-server.mjs [--server http://localhost:9000] [--port 9001]

import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const UI = fileURLToPath(new URL('.', import.meta.url));
/** The path of the files of this folder. That of the server has a hash in the place of `dev`. */
const ASSETS = 'assets/dev';
const CONTENT_TYPES = { '.css': 'text/css; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.svg': 'image/svg+xml' };
/** The script of the page that the server sends, after the relative path to its root. */
const BUNDLE = /src="([./]*)assets\/[^"/]+\/dist\/app\.js"/;
/** Headers of a response that do not fit a changed body. */
const ABOUT_BODY = ['content-length', 'content-encoding', 'etag', 'transfer-encoding'];

const { values } = parseArgs({ options: { server: { type: 'string', default: 'http://localhost:9000' }, port: { type: 'string', default: '9001' } } });
const target = new URL(values.server);
const targetPort = Number(target.port || 80);

const server = http.createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', target);
  const asset = pathname.split(`/${ASSETS}/`)[1];
  if (asset) sendAsset(asset, response);
  else forward(request, response);
});
server.on('upgrade', forwardWebSocket);
server.listen(Number(values.port), 'localhost', () => console.log(`http://localhost:${values.port}/ shows ${UI} with the data of ${target}`));

/** Sends a file of this folder. */
function sendAsset(name, response) {
  const file = path.join(UI, decodeURIComponent(name));
  const contentType = CONTENT_TYPES[path.extname(file)];
  try {
    if (!contentType || !file.startsWith(UI)) throw new Error('not an asset');
    const content = readFileSync(file);
    response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(content);
  } catch {
    response.writeHead(404).end();
  }
}

/** Forwards a request. If the server responds with its page, that is replaced by the page of this folder. */
function forward(request, response) {
  const headers = targetHeaders(request.headers);
  const isNavigation = request.headers.accept?.includes('text/html');
  // The body of a page is read here, so it must be there and not compressed.
  if (isNavigation) for (const name of ['accept-encoding', 'if-none-match']) delete headers[name];
  const options = { host: target.hostname, port: targetPort, path: request.url, method: request.method, headers };
  const forwarded = http.request(options, async (answer) => {
    const isHtml = answer.headers['content-type']?.startsWith('text/html');
    if (isNavigation && isHtml && request.method === 'GET') {
      await sendPage(answer, response);
    } else {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    }
  });
  forwarded.on('error', (error) => (response.headersSent ? response.destroy() : response.writeHead(502).end(`${target}: ${error.message}\n`)));
  request.pipe(forwarded);
}

/** Sends the page of this folder if the answer is the page of the server, and the answer otherwise. */
async function sendPage(answer, response) {
  const chunks = [];
  for await (const chunk of answer) chunks.push(chunk);
  const original = Buffer.concat(chunks).toString();
  const root = BUNDLE.exec(original)?.[1];
  const body = root === undefined ? original : renderPage(root);
  const headers = { ...answer.headers, 'cache-control': 'no-store' };
  for (const name of ABOUT_BODY) delete headers[name];
  headers['content-security-policy'] = withHashes(headers['content-security-policy'] ?? '', original, body);
  response.writeHead(answer.statusCode ?? 502, headers).end(body);
}

/** Fills the template as crates/http-web/build/page.rs does, with the modules in the place of the bundle. */
function renderPage(root) {
  const styles = readdirSync(path.join(UI, 'css')).filter((name) => name.endsWith('.css')).sort();
  const values = { root, assets: ASSETS, style: styles.map((name) => readFileSync(path.join(UI, 'css', name), 'utf8')).join('') };
  const template = readFileSync(path.join(UI, 'index.html'), 'utf8').replace('/dist/app.js', '/js/main.js');
  return template.replace(/\{\{(\w+)\}\}/g, (_, name) => values[name]);
}

/** Replaces the hashes of inline styles and scripts in a content security policy. */
function withHashes(policy, before, after) {
  const hash = (page, tag) => `sha256-${createHash('sha256').update(page.split(`<${tag}>`)[1]?.split(`</${tag}>`)[0] ?? '').digest('base64')}`;
  return ['style', 'script'].reduce((text, tag) => text.replace(hash(before, tag), hash(after, tag)), policy);
}

/** Returns headers that the server accepts: it checks its own name and the origin. */
function targetHeaders({ referer: _, ...headers }) {
  if (headers.origin) headers.origin = target.origin;
  return { ...headers, host: target.host };
}

/** Forwards a WebSocket: its handshake with changed headers, then all bytes. */
function forwardWebSocket(request, socket, head) {
  const forwarded = net.connect(targetPort, target.hostname, () => {
    const headers = Object.entries(targetHeaders(request.headers)).map(([name, value]) => `${name}: ${value}`);
    forwarded.write([`GET ${request.url} HTTP/1.1`, ...headers, '', ''].join('\r\n'));
    forwarded.write(head);
    forwarded.pipe(socket).pipe(forwarded);
  });
  forwarded.on('error', () => socket.destroy());
  socket.on('error', () => forwarded.destroy());
}
