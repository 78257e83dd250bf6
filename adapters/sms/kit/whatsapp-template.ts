import type { CodeMessage } from "../../../src/ports/sms-sender.js";
import { requireText } from "../../kit/option-error.js";
import { type ByLanguage, openByLanguage } from "./by-language.js";

export interface WhatsappTemplateOptions {
  /** Name of an approved template of the category authentication, with a button that copies the code. */
  readonly template: string;
  /** The template's language codes at WhatsApp: one for all messages, or `{ fr: "fr", default: "en_US" }`. */
  readonly languages: ByLanguage;
}

/**
 * Returns a function that makes a WhatsApp authentication template with a message's code ("Authentication templates",
 * developers.facebook.com/documentation/business-messaging/whatsapp/templates/authentication-templates). The code is a
 * parameter twice: of the text, and of the button that copies it, whose type is `url` in messages.
 *
 * @throws TypeError for a missing template or missing languages.
 */
export function openWhatsappTemplate(sender: string, options: WhatsappTemplateOptions): (message: CodeMessage) => object {
  const name = requireText(sender, "template", options.template, "Pass the name of an approved authentication template.");
  const languageOf = openByLanguage(sender, "languages", options.languages, 'Pass a language code such as "en_US", or { fr: "fr", default: "en_US" }.');
  return (message) => {
    const parameters = [{ type: "text", text: message.code }];
    return {
      name,
      language: { policy: "deterministic", code: languageOf(message) },
      components: [
        { type: "body", parameters },
        { type: "button", sub_type: "url", index: "0", parameters },
      ],
    };
  };
}
