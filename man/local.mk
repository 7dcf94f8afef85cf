# SPDX-License-Identifier: GPL-2.0-or-later
dist_man_MANS += man/belay.conf.5
dist_man_MANS += man/libbelay.3
dist_man_MANS += man/belay.1
dist_man_MANS += man/belayd.8
dist_man_MANS += man/belay-preload.7
dist_man_MANS += man/belay-lvmlockd.8
