import phoneproof = require("phoneproof");
import hcaptcha = require("phoneproof/challenge/hcaptcha");
import recaptcha = require("phoneproof/challenge/recaptcha");
import turnstile = require("phoneproof/challenge/turnstile");
import betterAuth = require("phoneproof/better-auth");
import hooks = require("phoneproof/hooks");
import hooksKit = require("phoneproof/hooks/kit");
import client = require("phoneproof/client");
import express = require("phoneproof/express");
import fastify = require("phoneproof/fastify");
import fetch = require("phoneproof/fetch");
import memory = require("phoneproof/memory");
import mongo = require("phoneproof/mongo");
import postgres = require("phoneproof/postgres");
import next = require("phoneproof/next");
import preludeV2 = require("phoneproof/prelude-v2");
import twilioVerify = require("phoneproof/twilio-verify");
import node = require("phoneproof/node");
import otpInput = require("phoneproof/otp-input");
import redis = require("phoneproof/redis");
import router = require("phoneproof/router");
import lookupChain = require("phoneproof/lookup/chain");
import lookupHttp = require("phoneproof/lookup/http");
import lookupTelnyx = require("phoneproof/lookup/telnyx");
import lookupTwilio = require("phoneproof/lookup/twilio");
import lookupVonage = require("phoneproof/lookup/vonage");
import console_ = require("phoneproof/senders/console");
import africastalking = require("phoneproof/senders/africastalking");
import aws = require("phoneproof/senders/aws");
import http = require("phoneproof/senders/http");
import inbox = require("phoneproof/senders/inbox");
import infobip = require("phoneproof/senders/infobip");
import kit = require("phoneproof/senders/kit");
import messagebird = require("phoneproof/senders/messagebird");
import plivo = require("phoneproof/senders/plivo");
import sinch = require("phoneproof/senders/sinch");
import smpp = require("phoneproof/senders/smpp");
import otel = require("phoneproof/otel");
import telegram = require("phoneproof/senders/telegram");
import telnyx = require("phoneproof/senders/telnyx");
import twilio = require("phoneproof/senders/twilio");
import twilioVoice = require("phoneproof/senders/twilio-voice");
import vonage = require("phoneproof/senders/vonage");
import vonageVoice = require("phoneproof/senders/vonage-voice");
import whatsapp = require("phoneproof/senders/whatsapp");
import sqlite = require("phoneproof/sqlite");
import testing = require("phoneproof/testing");
import webhooks = require("phoneproof/webhooks");

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
betterAuth.betterAuth(verifier);
fetch.fetchHandler([verifier, preludeV2.preludeV2(verifier), twilioVerify.twilioVerify(verifier)]);
testing.storeContract();
export const others = [
  client.createClient,
  otpInput.otpWords,
  router.router,
  africastalking.africasTalkingSender,
  aws.awsSender,
  http.httpSender,
  inbox.inboxSender,
  infobip.infobipSender,
  messagebird.messageBirdSender,
  plivo.plivoSender,
  sinch.sinchSender,
  smpp.smppSender,
  telegram.telegramSender,
  telnyx.telnyxSender,
  hcaptcha.hcaptchaChallenge,
  recaptcha.recaptchaChallenge,
  turnstile.turnstileChallenge,
  twilio.twilioSender,
  twilioVoice.twilioVoiceSender,
  vonage.vonageSender,
  vonageVoice.vonageVoiceSender,
  whatsapp.whatsappSender,
  webhooks.verifyWebhook,
  otel.openTelemetry,
  kit.carrierSender,
  lookupChain.lookupChain,
  lookupHttp.httpLookup,
  lookupTelnyx.telnyxLookup,
  lookupTwilio.twilioLookup,
  lookupVonage.vonageLookup,
];
export const stores: readonly [typeof redis.redisStore, typeof mongo.mongoStore, typeof postgres.postgresStore, typeof sqlite.sqliteStore] = [
  redis.redisStore,
  mongo.mongoStore,
  postgres.postgresStore,
  sqlite.sqliteStore,
];
hooks.hooks(verifier, [hooks.genericHook({ token: "t" })]);
hooksKit.json(200, {});
