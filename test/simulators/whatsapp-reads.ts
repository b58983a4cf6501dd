// What the WhatsApp simulator shows of numbers, accounts and templates, with Graph's `fields` filter.
import type { Business, WhatsAppNumber } from './whatsapp-accounts.ts';
import type { Template } from './whatsapp-templates.ts';

/** The asked fields of an object, or the standard ones; `id` is always there. Unknown fields are left out. */
export const pickFields = (
  all: Record<string, unknown>,
  asked: string | null,
  standard: string[],
): Record<string, unknown> => {
  const names = asked ? asked.split(',').map((name) => name.trim()) : standard;
  return Object.fromEntries(
    ['id', ...names].filter((name) => name in all).map((name) => [name, all[name]]),
  );
};

/** `health_status` of an account's nodes. */
export const healthOf = (business: Business) => {
  const blocked = business.fault !== null;
  const state = blocked ? 'BLOCKED' : 'AVAILABLE';
  const errors = blocked
    ? {
        errors: [
          {
            error_code: business.fault,
            error_description: 'Messages of this account are refused.',
            possible_solution: 'Resolve the restriction of the account.',
          },
        ],
      }
    : {};
  return {
    can_send_message: state,
    entities: [
      { entity_type: 'WABA', id: business.wabaId, can_send_message: state, ...errors },
      { entity_type: 'BUSINESS', id: business.businessId, can_send_message: 'AVAILABLE' },
    ],
  };
};

const display = (digits: string): string =>
  digits.startsWith('1') && digits.length === 11
    ? `+1 ${digits.slice(1, 4)}-${digits.slice(4, 7)}-${digits.slice(7)}`
    : `+${digits}`;

/** A phone number node. */
export const numberFields = (number: WhatsAppNumber, business: Business) => ({
  id: number.id,
  display_phone_number: display(number.digits),
  verified_name: number.name,
  quality_rating: 'GREEN',
  code_verification_status: 'VERIFIED',
  name_status: 'APPROVED',
  status: number.registered ? 'CONNECTED' : 'PENDING',
  platform_type: number.registered ? 'CLOUD_API' : 'NOT_APPLICABLE',
  throughput: { level: 'STANDARD' },
  whatsapp_business_manager_messaging_limit: 'TIER_2K',
  health_status: healthOf(business),
});

/** A WhatsApp business account node. */
export const businessFields = (business: Business) => ({
  id: business.wabaId,
  name: business.name,
  timezone_id: '1',
  currency: 'USD',
  country: 'US',
  ownership_type: 'CLIENT_OWNED',
  account_review_status: 'APPROVED',
  business_verification_status: 'verified',
  primary_business_location: 'US',
  message_template_namespace: '00000000_0000_0000_0000_000000000000',
  owner_business_info: { id: business.businessId, name: business.name },
  health_status: healthOf(business),
});

/** A template node. */
export const templateFields = (template: Template) => ({
  id: template.id,
  name: template.name,
  language: template.language,
  status: template.status,
  category: template.category,
  components: template.components,
  rejected_reason: template.rejectedReason,
  quality_score: { score: 'UNKNOWN' },
  message_send_ttl_seconds: template.ttlSeconds,
});
