// Serves a folder by a server of npm: serve.cjs WHICH FOLDER PORT. NODE_PATH has their packages.
const fs = require('fs');
const http = require('http');
const path = require('path');

const [which, folder, port] = process.argv.slice(2);
const listen = (handler) => http.createServer(handler).listen(port, '127.0.0.1');

function expressApp(route) {
  const express = require('express');
  const app = express();
  app.use(require('compression')());
  return listen(route(app, express));
}

const servers = {
  'express-static': () => expressApp((app, express) => app.use(express.static(folder))),
  'express-send': () =>
    expressApp((app) => app.get('/:name', (request, response) => response.type('csv').send(fs.readFileSync(path.join(folder, request.params.name))))),
  'express-write': () =>
    expressApp((app) =>
      app.get('/:name', (request, response) => {
        response.type('csv');
        for (const line of fs.readFileSync(path.join(folder, request.params.name), 'utf8').split(/(?<=\n)/)) response.write(line);
        response.end();
      }),
    ),
  fastify: async () => {
    const app = require('fastify')();
    await app.register(require('@fastify/compress'));
    await app.register(require('@fastify/static'), { root: folder });
    await app.listen({ host: '127.0.0.1', port: Number(port) });
  },
  sirv: () => listen(require('sirv')(folder, { dev: true })),
  'sirv-etag': () => listen(require('sirv')(folder, { dev: true, etag: true })),
};
servers[which]();
