// Serves web/ from the disk, so that a change of the page needs no build, and forwards every other
// request to a server that runs already:
//
//   build/lockd --http-addr 127.0.0.1:8080 &
//   node tests/web/dev_server.mjs [port, 8090] [address of the server, 127.0.0.1:8080]
//
// Files have the content security policy of the server's own page.
import { createServer, request as ask } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';

const [port = '8090', server = '127.0.0.1:8080'] = process.argv.slice(2);
const types = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript' };

function forward(incoming, outgoing, answer) {
  const { method, headers, url } = incoming;
  const call = ask(`http://${server}${url}`, { method, headers }, answer);
  call.on('error', (error) => outgoing.destroy(error));
  outgoing.on('close', () => call.destroy());
  incoming.pipe(call);
}

createServer(async (incoming, outgoing) => {
  const { pathname } = new URL(incoming.url, 'http://localhost');
  const file = new URL(`../../web${pathname === '/' ? '/index.html' : pathname}`, import.meta.url);
  const content = await readFile(file).catch(() => null);
  if (content === null) {
    forward(incoming, outgoing, (reply) => {
      outgoing.writeHead(reply.statusCode, reply.headers);
      reply.pipe(outgoing);
    });
    return;
  }
  incoming.url = '/';
  forward(incoming, outgoing, ({ headers }) => {
    outgoing.setHeader('Content-Security-Policy', headers['content-security-policy']);
    outgoing.setHeader('Content-Type', types[extname(file.pathname)] ?? 'image/svg+xml');
    outgoing.end(content);
  });
}).listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));
