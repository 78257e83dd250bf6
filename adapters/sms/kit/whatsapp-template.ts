/**
 * A WhatsApp authentication template with its code ("Authentication templates",
 * developers.facebook.com/documentation/business-messaging/whatsapp/templates/authentication-templates). The code is a
 * parameter twice: of the text, and of the button that copies it, whose type is `url` in messages.
 */
export function whatsappTemplate(name: string, language: string, code: string): object {
  const parameters = [{ type: "text", text: code }];
  return {
    name,
    language: { policy: "deterministic", code: language },
    components: [
      { type: "body", parameters },
      { type: "button", sub_type: "url", index: "0", parameters },
    ],
  };
}
