// The account itself: who it is (spec section 4, "Account").
import { accountDetails, accountDetailsView } from '../account-fields.ts';
import { route } from '../route.ts';

const tag = 'Account';

export const accountRoutes = [
  route({
    ...{ method: 'GET', path: '/v1/clients/me', tag, auth: 'account' },
    summary: 'The account that makes the call.',
    data: accountDetails(),
    handle: (_, { account }) => Promise.resolve(accountDetailsView(account)),
  }),
];
