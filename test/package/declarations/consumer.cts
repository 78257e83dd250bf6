import phoneproof = require("phoneproof");
import express = require("phoneproof/express");
import fastify = require("phoneproof/fastify");
import fetch = require("phoneproof/fetch");
import memory = require("phoneproof/memory");
import mongo = require("phoneproof/mongo");
import next = require("phoneproof/next");
import node = require("phoneproof/node");
import redis = require("phoneproof/redis");
import console_ = require("phoneproof/senders/console");
import testing = require("phoneproof/testing");

const verifier: phoneproof.Verifier = phoneproof.createVerifier({
  store: memory.memoryStore(),
  sender: console_.consoleSender(),
  secret: "a".repeat(32),
  countries: "all",
  customers: [],
});
node.nodeHandler(verifier);
next.nextHandlers(verifier);
express.expressHandlers(verifier);
fastify.fastifyPlugin(verifier);
fetch.fetchHandler(verifier);
testing.storeContract();
export const stores: readonly [typeof redis.redisStore, typeof mongo.mongoStore] = [redis.redisStore, mongo.mongoStore];
