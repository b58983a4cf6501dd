// The pages, forms and files of the console.
import type { OpsRoute } from '../route.ts';
import { assetRoute } from './assets.ts';
import { accountPage } from './pages/account.ts';
import { accountForms } from './pages/account-forms.ts';
import { searchForm } from './pages/account-search.ts';
import { accountsPage } from './pages/accounts.ts';
import { auditPage } from './pages/audit.ts';
import { capacityForms, capacityPage } from './pages/capacity.ts';
import { channelForms, channelsPage } from './pages/channels.ts';
import { deadJobPage, deadPage } from './pages/dead.ts';
import { missingPage, rootRoute } from './pages/elsewhere.ts';
import { letterForms } from './pages/letters.ts';
import { messageForms, messagePage, messagesPage } from './pages/messages.ts';
import { orderForms } from './pages/orders.ts';
import { overviewPage } from './pages/overview.ts';
import { paymentForms, paymentsPage } from './pages/payments.ts';
import { processesPage } from './pages/processes.ts';
import { queuePage, queuesPage } from './pages/queues.ts';
import { switchesPage, switchForms } from './pages/switches.ts';

export const consoleRoutes: readonly OpsRoute[] = [
  ...[
    assetRoute,
    overviewPage,
    queuesPage,
    queuePage,
    deadPage,
    deadJobPage,
    ...letterForms,
    ...orderForms,
  ],
  ...[channelsPage, ...channelForms, messagesPage, messagePage, ...messageForms],
  ...[accountsPage, searchForm, accountPage, ...accountForms, capacityPage, ...capacityForms],
  ...[paymentsPage, ...paymentForms],
  ...[switchesPage, ...switchForms, processesPage, auditPage],
  ...[rootRoute, missingPage],
];
