// SPDX-License-Identifier: Apache-2.0
// Each page registers itself. The order is that of the tabs.
import "./overview";
import "./flame/page";
import "./timeline/page";
import "./iterations/page";
import "./kernels";
import "./why/page";
import "./layers/page";
import "./levels/page";
import "./memory";
import "./ranks";
import "./traffic/page";
import "./compare/page";
