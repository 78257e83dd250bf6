import { africasTalkingCarrier } from "./africastalking.js";
import { jsonCarrier, kannelCarrier } from "./aggregator.js";
import { awsCarrier } from "./aws.js";
import { infobipCarrier } from "./infobip.js";
import { messageBirdCarrier } from "./messagebird.js";
import { plivoCarrier } from "./plivo.js";
import type { CarrierScript } from "./server.js";
import { sinchCarrier } from "./sinch.js";
import { telegramCarrier } from "./telegram.js";
import { telnyxCarrier } from "./telnyx.js";
import { twilioCarrier } from "./twilio.js";
import { twilioVoiceCarrier, vonageVoiceCarrier } from "./voice.js";
import { vonageCarrier } from "./vonage.js";
import { twilioWhatsappCarrier, vonageWhatsappCarrier, whatsappCarrier } from "./whatsapp.js";

export const carriers: readonly CarrierScript[] = [
  twilioCarrier,
  vonageCarrier,
  awsCarrier,
  messageBirdCarrier,
  plivoCarrier,
  sinchCarrier,
  infobipCarrier,
  telnyxCarrier,
  africasTalkingCarrier,
  kannelCarrier,
  jsonCarrier,
  telegramCarrier,
  whatsappCarrier,
  twilioWhatsappCarrier,
  vonageWhatsappCarrier,
  twilioVoiceCarrier,
  vonageVoiceCarrier,
];
