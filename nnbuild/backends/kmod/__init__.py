"""Linux kernels: where they come from, building modules for them, and booting them to try one."""
