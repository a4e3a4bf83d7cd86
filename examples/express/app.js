'use strict';

const path = require('node:path');
const express = require('express');
const feeds = require('./feeds.js');

const app = express();
app.set('view engine', 'ejs').set('views', path.join(__dirname, 'views'));

const page = (handler) => (req, res, next) => handler(req, res).catch(next); // Express 4 does not wait for promises

app.get('/feeds', page(async (req, res) => res.render('feeds', { feeds: await feeds.all() })));
app.post('/feeds', express.json(), page(async (req, res) => res.status(201).json({ id: await feeds.commit((db) => feeds.add(db, req.body)) })));
app.delete('/feeds/:id', page(async (req, res) => res.json({ id: await feeds.commit((db) => feeds.remove(db, req.params.id)) })));

module.exports = app; // app.listen(3000)
